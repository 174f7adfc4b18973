"""Settings: what they are (`schema`), who reads them (`stages`), where they come from (`load`)."""
