"""One list of programs and of questions for all four frameworks; what one of them cannot do is listed with a reason."""
