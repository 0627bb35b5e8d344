"""Tidemill in Airflow."""
