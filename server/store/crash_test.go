package store

const crashEnv = "TURNKEEPER_STORE_CRASH"

func crashChild() {}
