// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the credentials for VCD from an identity and its Secret.
package credentials

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Config returns a configuration with the credentials and TLS settings of an identity. It trims white space, which
// editors add and which is never part of a credential. The caller sets site and organization.
func Config(identity infrav1.VCDIdentitySpec, secret *corev1.Secret) vcd.Config {
	value := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	insecure := ptr.Deref(identity.TLS.InsecureSkipVerify, false)
	var bundle []byte // without effect if the certificate is not verified
	for _, part := range []string{identity.TLS.CABundle, value(infrav1.SecretCABundle)} {
		if part != "" && !insecure {
			bundle = append(bundle, strings.TrimSpace(part)+"\n"...)
		}
	}
	return vcd.Config{
		Credentials: vcd.Credentials{
			Username: value(infrav1.SecretUsername),
			Password: value(infrav1.SecretPassword),
			APIToken: cmp.Or(value(infrav1.SecretAPIToken), value(infrav1.SecretRefreshToken)),
		},
		CABundle: bundle,
		Insecure: insecure,
		Version:  string(secret.UID) + "/" + secret.ResourceVersion,
	}
}
