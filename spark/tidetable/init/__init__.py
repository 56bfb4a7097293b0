"""A first YAML for a source that nobody has described yet, from what its rows say. No JVM.

look.py         the source: format, columns, a sample of its rows
roles.py        which column is the key, and which times begin and end a row's life
proposal.py     how often to update, how long rows live, which scheme
written.py      the YAML, with what it is not sure of in comments
new_project.py  a folder for Airflow that uses the package
"""

from tidetable.init.look import Look, look
from tidetable.init.new_project import new_project
from tidetable.init.proposal import Proposal, propose
from tidetable.init.written import as_yaml

__all__ = ["Look", "Proposal", "as_yaml", "look", "new_project", "propose"]
