// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func identityValidator() *validator[*infrav1.VCDIdentity] {
	return &validator[*infrav1.VCDIdentity]{
		kind:      "VCDIdentity",
		finalizer: infrav1.IdentityFinalizer,
		spec:      func(i *infrav1.VCDIdentity) any { return i.Spec },
		rules: func(i *infrav1.VCDIdentity) field.ErrorList {
			return identitySpecErrors(&i.Spec, field.NewPath("spec"))
		},
		warnings: func(i *infrav1.VCDIdentity) admission.Warnings { return identityWarnings(&i.Spec) },
	}
}

func clusterIdentityValidator() *validator[*infrav1.VCDClusterIdentity] {
	return &validator[*infrav1.VCDClusterIdentity]{
		kind:      "VCDClusterIdentity",
		finalizer: infrav1.IdentityFinalizer,
		spec:      func(i *infrav1.VCDClusterIdentity) any { return i.Spec },
		rules: func(i *infrav1.VCDClusterIdentity) field.ErrorList {
			path := field.NewPath("spec")
			errs := identitySpecErrors(&i.Spec.VCDIdentitySpec, path)
			errs = append(errs, orgsErrors(i.Spec.Orgs, path.Child("orgs"))...)
			return append(errs, allowedNamespacesErrors(i.Spec.AllowedNamespaces, path.Child("allowedNamespaces"))...)
		},
		warnings: func(i *infrav1.VCDClusterIdentity) admission.Warnings {
			warnings := identityWarnings(&i.Spec.VCDIdentitySpec)
			if i.Spec.AllowedNamespaces == nil {
				warnings = append(warnings,
					"spec.allowedNamespaces: no namespace may use this identity until it is set")
			}
			if orgs := i.Spec.Orgs; i.Spec.Type == infrav1.CredentialServiceAccount &&
				(len(orgs) != 1 || orgs[0] == infrav1.AnyOrg) {
				warnings = append(warnings, "spec.orgs: a service account belongs to one organization, and only one of the provider can log in to others: list only its organization")
			}
			return warnings
		},
	}
}

func identitySpecErrors(spec *infrav1.VCDIdentitySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(spec.SecretRef.Name) {
		errs = append(errs, field.Invalid(path.Child("secretRef", "name"), spec.SecretRef.Name, msg))
	}
	if spec.TLS.CABundle != "" && !isCABundle(spec.TLS.CABundle) {
		errs = append(errs, field.Invalid(path.Child("tls", "caBundle"), field.OmitValueType{},
			"must contain PEM certificates, each from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----"))
	}
	return errs
}

// orgsErrors rejects invalid names of organizations, and lists with entries besides "*", which have no effect.
func orgsErrors(orgs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, org := range orgs {
		switch {
		case org == infrav1.AnyOrg && len(orgs) > 1:
			errs = append(errs, field.Invalid(path.Index(i), org, "must be the only entry: it allows all organizations"))
		case org != infrav1.AnyOrg && strings.ContainsAny(org, "*?"):
			errs = append(errs, field.Invalid(path.Index(i), org,
				`must be the name of an organization, or "*" for any: patterns are not supported`))
		case strings.TrimSpace(org) != org:
			errs = append(errs, field.Invalid(path.Index(i), org, "must not begin or end with a space"))
		}
	}
	return errs
}

func allowedNamespacesErrors(allowed *infrav1.AllowedNamespaces, path *field.Path) field.ErrorList {
	if allowed == nil {
		return nil
	}
	var errs field.ErrorList
	for i, namespace := range allowed.List {
		for _, msg := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Child("list").Index(i), namespace, msg))
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(allowed.Selector); err != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), field.OmitValueType{}, err.Error()))
	}
	return errs
}

func identityWarnings(spec *infrav1.VCDIdentitySpec) admission.Warnings {
	if spec.TLS.InsecureSkipVerify == nil || !*spec.TLS.InsecureSkipVerify {
		return nil
	}
	return admission.Warnings{"spec.tls.insecureSkipVerify: the certificate of the site is not checked: an attacker can read the credentials; use tls.caBundle"}
}

// isCABundle reports whether text contains one or more certificates and no other PEM blocks.
func isCABundle(text string) bool {
	rest := []byte(text)
	count := 0
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return count > 0 && !strings.Contains(string(rest), "-----BEGIN")
		}
		if block.Type != "CERTIFICATE" {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		count++
	}
}
