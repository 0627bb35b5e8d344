class SparkTable:
    def __init__(self, spec, session): self.spec=spec
