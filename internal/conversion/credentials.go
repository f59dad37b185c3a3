// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// credentials locates the credentials in objects of a kind. They are always taken from the object, never from a note.
type credentials[Hub, Old object] struct {
	ofHub func(hub Hub) **infrav1.CAPVCDCredentials
	ofOld func(old Old) *v1beta3.UserCredentialsContext
}

// strip removes the credentials of a v1beta4 object. An empty struct remains, which marks that it had credentials.
func (c *credentials[Hub, Old]) strip(hub Hub) {
	if c == nil || *c.ofHub(hub) == nil {
		return
	}
	*c.ofHub(hub) = &infrav1.CAPVCDCredentials{}
}

// restore copies the credentials of a CAPVCD object to a v1beta4 object that was stripped of them. It is a no-op if the
// object had none.
func (c *credentials[Hub, Old]) restore(old Old, hub Hub) {
	if c == nil || *c.ofHub(hub) == nil {
		return
	}
	*c.ofHub(hub) = credentialsOf(c.ofOld(old))
}

// hide removes the credentials of CAPVCD objects.
func (c *credentials[Hub, Old]) hide(olds ...Old) {
	if c == nil {
		return
	}
	for _, old := range olds {
		*c.ofOld(old) = v1beta3.UserCredentialsContext{}
	}
}

// keep copies the credentials of one CAPVCD object to another.
func (c *credentials[Hub, Old]) keep(from, to Old) {
	if c == nil {
		return
	}
	c.ofOld(from).DeepCopyInto(c.ofOld(to))
}

// credentialsToHub sets the credentials of a v1beta4 spec, and the reference to the identity that the controller
// creates from them.
func credentialsToHub(given *v1beta3.UserCredentialsContext, object metav1.Object, spec *infrav1.VCDClusterSpec) {
	spec.CAPVCDCredentials = credentialsOf(given)
	spec.IdentityRef = identityOf(spec.CAPVCDCredentials, object)
}

// settleIdentity sets the identity reference if an edit added credentials.
func settleIdentity(spec, former *infrav1.VCDClusterSpec, object metav1.Object) {
	if spec.CAPVCDCredentials != nil && former.CAPVCDCredentials == nil {
		spec.IdentityRef = identityOf(spec.CAPVCDCredentials, object)
	}
}

// identityOf returns the identity reference for credentials. The identity has the name of the referenced Secret if that
// Secret contains all credentials and is in the same namespace. Otherwise its name is derived from the object.
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

// noIdentity is the identity name for an object without credentials. No identity of this name exists; the user must set
// a reference.
const noIdentity = "capvcd-without-credentials"

// maxObjectName is the maximum number of characters of an object's name that a derived name contains.
const maxObjectName = 220

// ownName returns the name of the identity for credentials in a VCDCluster or VCDClusterTemplate.
func ownName(object metav1.Object) string {
	name := object.GetName()
	return name[:min(len(name), maxObjectName)] + "-capvcd-credentials"
}

// credentialsFromHub returns the credentials of a v1beta4 spec. If the controller has moved them to a Secret, it
// returns a reference to that Secret, which has the same name as the identity.
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

// credentialsOf converts credentials to v1beta4. It returns nil if they are empty.
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
