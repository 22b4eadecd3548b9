"""What `streamwatch state` does with a state that no daemon writes: look, verify, export, bring forward."""
