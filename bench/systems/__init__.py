"""The systems that are compared: ours, what people do with Delta instead, and ClickHouse."""
