"""How good the answers are: questions with known evidence, asked and scored, beside simpler recipes."""
