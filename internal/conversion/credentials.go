// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// credentials are where objects of a kind have credentials. They are taken from the object itself, never from a note.
type credentials[Hub, Old object] struct {
	ofHub func(hub Hub) **infrav1.CAPVCDCredentials
	ofOld func(old Old) *v1beta3.UserCredentialsContext
}

// strip leaves of the credentials of our object only that there are some.
func (c *credentials[Hub, Old]) strip(hub Hub) {
	if c == nil || *c.ofHub(hub) == nil {
		return
	}
	*c.ofHub(hub) = &infrav1.CAPVCDCredentials{}
}

// restore gives our object, if it had some, the credentials of an object of CAPVCD.
func (c *credentials[Hub, Old]) restore(old Old, hub Hub) {
	if c == nil || *c.ofHub(hub) == nil {
		return
	}
	*c.ofHub(hub) = credentialsOf(c.ofOld(old))
}

// hide removes the credentials of objects of CAPVCD.
func (c *credentials[Hub, Old]) hide(olds ...Old) {
	if c == nil {
		return
	}
	for _, old := range olds {
		*c.ofOld(old) = v1beta3.UserCredentialsContext{}
	}
}

// keep gives one object of CAPVCD the credentials of another.
func (c *credentials[Hub, Old]) keep(from, to Old) {
	if c == nil {
		return
	}
	c.ofOld(from).DeepCopyInto(c.ofOld(to))
}

// credentialsToHub sets the credentials of our spec, and the identity that the controller makes of them.
func credentialsToHub(given *v1beta3.UserCredentialsContext, object metav1.Object, spec *infrav1.VCDClusterSpec) {
	spec.CAPVCDCredentials = credentialsOf(given)
	spec.IdentityRef = identityOf(spec.CAPVCDCredentials, object)
}

// settleIdentity names the identity of credentials that were not there before.
func settleIdentity(spec, former *infrav1.VCDClusterSpec, object metav1.Object) {
	if spec.CAPVCDCredentials != nil && former.CAPVCDCredentials == nil {
		spec.IdentityRef = identityOf(spec.CAPVCDCredentials, object)
	}
}

// identityOf returns the identity for credentials. It is named like its Secret: the one that is named already, if that has
// all, else one that belongs to the object.
func identityOf(held *infrav1.CAPVCDCredentials, object metav1.Object) infrav1.IdentityReference {
	ref := infrav1.IdentityReference{
		Kind: infrav1.NamespacedIdentity,
		Name: ownName(object),
	}
	if held == nil {
		ref.Name = noIdentity
		return ref
	}
	if held.SecretRef == nil || held.Username != "" || held.Password != "" || held.RefreshToken != "" {
		return ref
	}
	if namespace := held.SecretRef.Namespace; namespace == "" || namespace == object.GetNamespace() {
		ref.Name = cmp.Or(held.SecretRef.Name, ref.Name)
	}
	return ref
}

// noIdentity is the name of the identity of an object without credentials. There is none: its user has to name one.
const noIdentity = "capvcd-without-credentials"

// maxObjectName is how many characters of the name of an object are part of another name.
const maxObjectName = 220

// ownName returns the name of an identity that belongs to a VCDCluster or VCDClusterTemplate.
func ownName(object metav1.Object) string {
	name := object.GetName()
	return name[:min(len(name), maxObjectName)] + "-capvcd-credentials"
}

// credentialsFromHub returns the credentials of our spec. Those that were moved to a Secret are found by the name of the
// identity, which is that of the Secret.
func credentialsFromHub(spec *infrav1.VCDClusterSpec, namespace string) v1beta3.UserCredentialsContext {
	if held := spec.CAPVCDCredentials; held != nil {
		given := v1beta3.UserCredentialsContext{
			Username:     held.Username,
			Password:     held.Password,
			RefreshToken: held.RefreshToken,
		}
		if held.SecretRef != nil {
			given.SecretRef = &v1beta3.SecretReference{
				Name:      held.SecretRef.Name,
				Namespace: held.SecretRef.Namespace,
			}
		}
		return given
	}
	ref := spec.IdentityRef
	if ref.Kind == infrav1.ClusterIdentity || ref.Name == "" || ref.Name == noIdentity {
		return v1beta3.UserCredentialsContext{}
	}
	return v1beta3.UserCredentialsContext{
		SecretRef: &v1beta3.SecretReference{
			Name:      ref.Name,
			Namespace: namespace,
		},
	}
}

// credentialsOf returns credentials as our spec has them; nil for none.
func credentialsOf(given *v1beta3.UserCredentialsContext) *infrav1.CAPVCDCredentials {
	if *given == (v1beta3.UserCredentialsContext{}) {
		return nil
	}
	held := &infrav1.CAPVCDCredentials{
		Username:     given.Username,
		Password:     given.Password,
		RefreshToken: given.RefreshToken,
	}
	if given.SecretRef != nil {
		held.SecretRef = &infrav1.CAPVCDSecretReference{
			Name:      given.SecretRef.Name,
			Namespace: given.SecretRef.Namespace,
		}
	}
	return held
}
