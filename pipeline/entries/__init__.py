"""Entries in their stored form, taken apart column by column instead of message by message."""
