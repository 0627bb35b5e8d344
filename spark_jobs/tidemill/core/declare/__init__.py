"""How a pipeline is declared: streams, operators, windows with their aggregates, and the checks of them."""
