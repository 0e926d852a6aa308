"""The compatibility matrix: scenario programs of many clients, against profiles and masks."""
