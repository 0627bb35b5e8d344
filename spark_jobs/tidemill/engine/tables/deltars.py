import pyarrow as pa
from deltalake import DeltaTable, write_deltalake, CommitProperties, Transaction as Tx
from tidemill.engine.arrow_types import arrow_schema
from tidemill.engine.tables.protocol import *
from tidemill.core.errors import Fenced
class DeltaRsTable:
    def __init__(self, spec, storage_options=None): self.spec=spec
    def _dt(self): return DeltaTable(self.spec.uri)
    def version(self): return self._dt().version() if DeltaTable.is_deltatable(self.spec.uri) else None
    def transaction_version(self, app_id): return self._dt().transaction_version(app_id)
    def _conform(self, rows):
        sch=arrow_schema(self.spec.fields); return rows.select(sch.names).cast(sch)
    def append(self, rows, *, transaction, plan_hash):
        dt=self._dt(); tx=[]
        if transaction:
            last=dt.transaction_version(transaction.app_id)
            if last is not None and last>=transaction.version:
                if last>transaction.version: raise Fenced('zombie')
                return AlreadyThere(dt.version())
            tx=[Tx(transaction.app_id,transaction.version)]
        write_deltalake(dt,self._conform(rows),mode='append',commit_properties=CommitProperties(app_transactions=tx,custom_metadata={'plan':plan_hash}))
        return Landed(dt.version())
    def upsert(self, rows, *, keys, within, transaction, plan_hash):
        dt=self._dt()
        last=dt.transaction_version(transaction.app_id)
        if last is not None and last>=transaction.version:
            if last>transaction.version: raise Fenced('zombie')
            return AlreadyThere(dt.version())
        c=within.column
        pred=" AND ".join(f"(t.`{k}` = s.`{k}`)" for k in keys)+f" AND (t.{c} >= '{within.low.isoformat()}') AND (t.{c} < '{within.high.isoformat()}')"
        dt.merge(self._conform(rows),pred,source_alias='s',target_alias='t',commit_properties=CommitProperties(app_transactions=[Tx(transaction.app_id,transaction.version)],custom_metadata={'plan':plan_hash})).when_matched_update_all().when_not_matched_insert_all().execute()
        return Landed(dt.version())
    def read(self, *, where=(), columns=None, version=None):
        f=[]
        for b in where:
            if b.low is not None: f.append((b.column,'>=',b.low))
            if b.high is not None: f.append((b.column,'<',b.high))
        return self._conform(DeltaTable(self.spec.uri,version=version).to_pyarrow_table(filters=f or None))
