"""Work in parts, spread over processes of this machine or over a Ray cluster; results come in the parts' order."""
