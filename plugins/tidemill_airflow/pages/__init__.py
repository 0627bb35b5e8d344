"""The page "Tidemill" in Airflow: where pipelines stand, what a batch did, where a number comes from, and actions.

Pages are made on the server from ledgers and tables, without Spark. Whatever changes data is a run of a DAG.
"""
