"""The torch.fx compatibility suite: each test states one behaviour and runs against torch.fx and against clew.fx."""
