"""Pictures of graphs: a captured program comes in; HTML, SVG and the formats of other viewers come out.

``picture`` makes a tree of boxes of a graph, as the modules and the control flow of the program are nested; all else
draws that tree. Nothing here runs the program or changes its graph.
"""
