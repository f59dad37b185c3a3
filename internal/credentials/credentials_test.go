// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/credentials"
)

func TestABundleReplacesTheSystemRoots(t *testing.T) {
	g := NewWithT(t)
	identity := infrav1.VCDIdentitySpec{TLS: infrav1.IdentityTLS{CABundle: "one\n", InsecureSkipVerify: ptr.To(false)}}

	config := credentials.Config(identity, &corev1.Secret{Data: map[string][]byte{infrav1.SecretCABundle: []byte("two")}})

	g.Expect(string(config.CABundle)).To(Equal("one\ntwo\n"))
	g.Expect(credentials.Config(infrav1.VCDIdentitySpec{}, &corev1.Secret{}).CABundle).To(BeNil(), "no bundle means the system's")
}

func TestABundleHasNoEffectWithoutVerification(t *testing.T) {
	g := NewWithT(t)
	identity := infrav1.VCDIdentitySpec{TLS: infrav1.IdentityTLS{InsecureSkipVerify: ptr.To(true)}}

	config := credentials.Config(identity, &corev1.Secret{Data: map[string][]byte{infrav1.SecretCABundle: []byte("two")}})

	g.Expect(config.Insecure).To(BeTrue())
	g.Expect(config.CABundle).To(BeNil(), "the cloud controller manager rejects both")
}
