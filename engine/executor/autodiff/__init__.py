"""Differentiation of graphs: from the operator table's gradient texts to graphs of backward passes."""
