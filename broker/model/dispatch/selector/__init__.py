"""Who owns which sticky key hash of a Key_Shared subscription: one module for each way of sharing them out."""
