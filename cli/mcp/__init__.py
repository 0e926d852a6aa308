"""`pulsarium mcp`: the commands of Pulsarium as tools of a coding assistant, over the Model Context Protocol."""
