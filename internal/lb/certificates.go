package lb

import (
	"slices"
	"strings"
)

// A certificatePlanner plans the import of certificates.
type certificatePlanner struct{ *planner }

// certificates finds the certificates of the listeners, and imports those that are not in the library yet.
func (p certificatePlanner) certificates() {
	imported := map[string]bool{}
	for _, t := range p.targets {
		c := t.listener.Certificate
		if !t.listener.Application.TLS() {
			continue
		}
		alias := c.Alias
		if alias == "" {
			alias = nameFor(KindCertificate, p.d.Owner, short(c.Chain))
		}
		t.certificate = Ref{Name: alias}
		if have := t.service.object.Certificate; c.Alias != "" && have.Name == alias {
			t.certificate = have
			continue
		}
		if p.need(Certificates) && !imported[alias] {
			imported[alias] = p.findCertificate(t, c)
		} else if p.o.Known.Has(Certificates) {
			p.findCertificate(t, Certificate{Alias: alias})
		}
	}
	if slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool { return p.imports(vs.object.Certificate.Name) }) {
		p.need(Certificates)
	}
}

// imports says whether an alias is one that imports for the owner have.
func (p certificatePlanner) imports(alias string) bool { return Imported(p.d.Owner, alias) }

// Imported says whether an alias is one that imports for an owner have.
func Imported(o Owner, alias string) bool {
	prefix := nameFor(KindCertificate, o, "")
	if o.Name == "" {
		prefix = prefixes[KindCertificate] // a long marker leaves out what the name was made of
	}
	return o.Cluster != "" && strings.HasPrefix(alias, prefix)
}

// findCertificate looks for the certificate of a target in the library. It returns true if it is imported by this plan.
func (p certificatePlanner) findCertificate(t *target, c Certificate) bool {
	var found []CertificateItem
	for _, x := range p.o.Certificates {
		if x.Name == t.certificate.Name {
			found = append(found, x)
		}
	}
	if len(found) == 1 {
		t.certificate.ID = found[0].ID
		return false
	}
	switch {
	case len(found) > 1:
		p.refuse(CertificateUnknown, "the certificate library has several certificates with the alias %q: give them different ones", t.certificate.Name)
	case c.Chain != "":
		m := Marker{Owner: p.d.Owner}
		p.step(phasePrepare, Step{
			Verb: Create, Kind: KindCertificate, Name: t.certificate.Name, Certificate: &CertificateItem{Object{Description: m.String()}, c.Chain, c.Key},
		})
		return true
	case !p.imports(t.certificate.Name):
		p.refuse(CertificateUnknown, "the certificate library has no certificate with the alias %q that the user can see: upload it, or correct the annotation", t.certificate.Name)
	}
	return false
}
