"""The commands `check`, `matrix` and `new-plugin`; entry points of the group `interlingua.commands` name them."""
