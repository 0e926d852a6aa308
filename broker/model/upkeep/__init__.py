"""What a broker does for its topics on its own: expiry, trimming, backlog quotas, deletion of what nobody uses."""
