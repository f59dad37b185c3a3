// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
)

// An Other is an identity of a manifest other than the cluster's.
type Other struct {
	// User names the object or program that uses the identity, for messages.
	User      string
	Namespace string // of a VCDIdentity
	Ref       infrav1.IdentityReference
	Site      string
	Org       string

	// Identity and Secret are nil if the manifest does not contain them.
	Identity *infrav1.VCDIdentity
	Secret   *corev1.Secret
}

// A Login is another identity with a way to log in with it.
type Login struct {
	Other

	Open Opener
}

// ErrUnknown means that an identity is neither in the manifest nor in an accessible management cluster, or that only
// the manager may use its credentials. It is no problem of the cluster.
var ErrUnknown = errors.New("not checked")

// othersOf returns the identities of a manifest other than the cluster's. It reports a cloud controller manager without
// an identity as a problem.
func othersOf(m *manifest) (others []Other, problems []string) {
	c := m.cluster
	if checks.ManagesCCM(c) {
		if ref := c.Spec.CloudProvider.IdentityRef; ref != nil && ref.Name != "" {
			others = append(others, m.other("the cloud controller manager", *ref, c.Spec.Site, c.Spec.Org))
		} else {
			problems = append(problems, "spec.cloudProvider of the VCDCluster: mode Managed requires identityRef; External and None do not")
		}
	}
	for i := range m.zones {
		zone := &m.zones[i]
		if checks.Zone(c, zone) == nil && !sharesLogin(c, zone) {
			others = append(others, m.other("VCDDeploymentZone "+zone.Name, zone.Spec.IdentityRef, zone.Spec.Site,
				zone.Spec.Org))
		}
	}
	return others, problems
}

// other returns an identity, with its object and Secret if the manifest contains them.
func (m *manifest) other(user string, ref infrav1.IdentityReference, site, org string) Other {
	other := Other{
		User:      user,
		Namespace: m.cluster.Namespace,
		Ref:       ref,
		Site:      site,
		Org:       org,
	}
	if identity := m.identities[ref.Name]; identity != nil && ref.Kind != infrav1.ClusterIdentity {
		other.Identity = identity
		other.Secret = m.secrets[identity.Spec.SecretRef.Name]
	}
	return other
}

// sharesLogin reports whether a zone uses the identity of the cluster.
func sharesLogin(c *infrav1.VCDCluster, zone *infrav1.VCDDeploymentZone) bool {
	return zone.Spec.IdentityRef == c.Spec.IdentityRef
}
