"""The interface between core and plugins, and how plugins are found."""
