"""Flower as the carrier: its SuperLink beside the coordinator, its SuperNode beside each site."""
