"""Models over HTTP, by the one predictor: the routes of text-embeddings-inference and OpenAI's embeddings, and ours."""
