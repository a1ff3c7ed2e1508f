"""The commands of this distribution, by subject; entry points of the group `interlingua.commands` name them."""
