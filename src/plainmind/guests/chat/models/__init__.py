"""Chat models: what an agent asks of one, and the two languages in which endpoints are asked."""
