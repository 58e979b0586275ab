"""What a hub asks of the machine that it runs on."""
