"""How fast the memory is, beside the widespread recipe and beside what other engines can do at best."""
