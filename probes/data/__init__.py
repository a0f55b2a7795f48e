"""Word lists, templates and occupations of the probes, one file a language where they have one."""
