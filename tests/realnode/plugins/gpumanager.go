package main

func newGpuManager(h *host) []resource  { return nil }
func newHami(h *host) []resource        { return nil }
func newVolcano(h *host) []resource     { return nil }
func newVolcanoVgpu(h *host) []resource { return nil }
func newNvidia(h *host) []resource      { return nil }
