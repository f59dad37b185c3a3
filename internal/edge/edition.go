package edge

// edition is that of the wish by which an IP set was written; 0 if it is not known.
func (g *gateway) edition(set string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.editions[set]
}

// wrote notes that an IP set was written by a wish of an edition, or may have been: an older wish must not come after it.
func (g *gateway) wrote(set string, edition uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.editions[set] = max(g.editions[set], edition)
}

// editions says of IP sets by which wishes they were written.
func (l *look) editions() {
	for i, set := range l.out.Sets {
		l.out.Sets[i].Edition = l.gateway.edition(set.Name)
	}
}
