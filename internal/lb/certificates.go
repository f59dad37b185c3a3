// SPDX-License-Identifier: Apache-2.0

package lb

import "strings"

// A Certificate is one of the organization's library by its alias, or one to be put there.
type Certificate struct {
	// Alias in the library. Empty for one to be imported.
	Alias string
	// Chain and Key are PEM, for a certificate to be imported. The key is never part of a text or a hash that
	// leaves the plan.
	Chain, Key string
	// Source names for users where the certificate is from.
	Source string
}

// aliasFor returns the alias of a certificate in the library, also if it is yet to be imported for an owner.
func (c Certificate) aliasFor(o Owner) string {
	if c.Alias != "" {
		return c.Alias
	}
	return nameFor(KindCertificate, o, short(c.Chain))
}

// Imported reports whether an alias is one that imports for an owner have.
func Imported(o Owner, alias string) bool {
	prefix := nameFor(KindCertificate, o, "")
	if o.Name == "" {
		prefix = prefixes[KindCertificate] // a long marker leaves out what the name was made of
	}
	return o.Cluster != "" && strings.HasPrefix(alias, prefix)
}
