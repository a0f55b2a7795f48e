"""Steps from the tables of each earlier version to those of this one."""
