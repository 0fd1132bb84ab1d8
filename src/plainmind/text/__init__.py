"""Pure functions on strings: passages, keyword terms, days named in a query, notes as Markdown."""
