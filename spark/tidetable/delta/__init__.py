"""Spark and Delta: stage a batch, apply a plan in one commit, read what is there."""
