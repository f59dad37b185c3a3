// SPDX-License-Identifier: Apache-2.0

package lb

import "slices"

// planCertificates finds the certificates of the listeners, and imports missing ones into the library.
func planCertificates(in input, bindings []binding) (map[string]Ref, outcome) {
	p := certificatePlanner{
		in:       in,
		imported: map[string]bool{},
		out:      in.outcome(),
	}
	found := map[string]Ref{}
	for _, b := range bindings {
		if b.listener.Application.TLS() {
			found[b.key()] = p.certificateOf(b)
		}
	}
	if slices.ContainsFunc(in.owned.services, func(vs owned[VirtualService]) bool {
		return Imported(in.desired.Owner, vs.object.Certificate.Name)
	}) {
		p.out.need(Certificates)
	}
	return found, p.out
}

// A certificatePlanner records which certificates the plan imports, because several listeners may use the same one.
type certificatePlanner struct {
	in       input
	imported map[string]bool // by alias
	out      outcome
}

// certificateOf finds the certificate of a listener, or imports it.
func (p *certificatePlanner) certificateOf(b binding) Ref {
	asked := b.listener.Certificate
	alias := asked.aliasFor(p.in.desired.Owner)
	if have := b.service.object.Certificate; asked.Alias != "" && have.Name == alias {
		return have
	}
	if !p.out.need(Certificates) {
		return Ref{Name: alias}
	}
	found := withAlias(p.in.observed.Certificates, alias)
	switch {
	case len(found) == 1:
		return Ref{found[0].ID, alias}
	case len(found) > 1:
		p.out.refuse(CertificateNotFound,
			"the certificate library has several certificates with the alias %q: give each a unique alias", alias)
	case asked.Chain != "" && !p.imported[alias]:
		p.importAs(alias, asked)
	case !Imported(p.in.desired.Owner, alias):
		p.out.refuse(CertificateNotFound,
			"no certificate with the alias %q is visible in the certificate library: upload it, or correct the annotation", alias)
	}
	return Ref{Name: alias}
}

// importAs imports a certificate into the library.
func (p *certificatePlanner) importAs(alias string, c Certificate) {
	p.imported[alias] = true
	p.out.step(phasePrepare, Step{
		Verb: Create,
		Kind: KindCertificate,
		Name: alias,
		Certificate: &CertificateItem{
			Object: Object{Description: Marker{Owner: p.in.desired.Owner}.String()},
			Chain:  c.Chain,
			Key:    c.Key,
		},
	})
}

// withAlias returns the certificates of a library with an alias.
func withAlias(library []CertificateItem, alias string) []CertificateItem {
	var found []CertificateItem
	for _, x := range library {
		if x.Name == alias {
			found = append(found, x)
		}
	}
	return found
}
