from deltalake import DeltaTable
from tidemill.engine.arrow_types import arrow_schema
def ensure_table(spec):
    if not DeltaTable.is_deltatable(spec.uri):
        DeltaTable.create(spec.uri, arrow_schema(spec.fields), mode="ignore", partition_by=list(spec.partition_by) or None)
