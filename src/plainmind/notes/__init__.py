"""The workspace: which notes there are, what they say, who may see them, how they are written and watched."""
