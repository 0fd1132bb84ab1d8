"""Pure functions on strings: lines, hashes, notes, passages, keyword terms, days named in a query."""
