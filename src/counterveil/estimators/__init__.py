"""Methods: from public and released numbers to an estimate with its error. None of them sees a private row."""
