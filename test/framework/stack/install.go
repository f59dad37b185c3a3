// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// ProviderInstall is a provider as it is shipped, and the program that is its manager.
type ProviderInstall struct {
	// ComponentsYAML is the components file: Namespace, CRDs, RBAC, webhook configurations, Deployment and so on.
	ComponentsYAML []byte
	// ManagerBinary is the program that the Deployment's image would hold.
	ManagerBinary string
	// Version in the inventory, such as v2.0.0.
	Version string
	// Args follow the arguments of the Deployment, so they win where both set a flag.
	Args []string
	// Env follows the environment of the Deployment.
	Env []string
	// Variables fill in ${NAME} in the components.
	Variables map[string]string
	// HealthFlag is the flag with the address for /readyz; empty for --health-addr, as Cluster API's managers have it.
	HealthFlag string
	// MetricsArgs are the flags that serve metrics, with %d for the port; nil for Cluster API's flags.
	MetricsArgs []string
}

// InstallProvider applies all of a provider but what needs containers and returns its manager, not yet started.
// Webhooks and conversions call the manager at a local port. The manager has the rights that the components give to it,
// no more.
func (s *Stack) InstallProvider(ctx context.Context, install ProviderInstall) (*Manager, error) {
	parsed, err := parseComponents(install.ComponentsYAML, install.Variables)
	if err != nil {
		return nil, err
	}
	m := s.newManager(parsed, install)
	if err := s.install(ctx, m); err != nil {
		return nil, fmt.Errorf("installing %s: %w", m.Name(), err)
	}
	return m, nil
}

// Unwire removes what calls the manager of a provider through a Service, after clusterctl has installed the provider:
// there are no pods here. InstallProvider makes the same objects call the manager at a local port.
func (s *Stack) Unwire(ctx context.Context, provider string) error {
	installed := client.MatchingLabels{providerLabel: provider}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{
		Group:   "apiextensions.k8s.io",
		Version: "v1",
		Kind:    "CustomResourceDefinitionList",
	})
	if err := s.client.List(ctx, crds, installed); err != nil {
		return fmt.Errorf("listing the kinds of %s: %w", provider, err)
	}
	unwired := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`))
	for i := range crds.Items {
		if err := s.client.Patch(ctx, &crds.Items[i], unwired); err != nil {
			return fmt.Errorf("removing the conversion of %s: %w", crds.Items[i].Name, err)
		}
	}
	if err := s.client.DeleteAllOf(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}, installed); err != nil {
		return fmt.Errorf("removing the webhooks of %s: %w", provider, err)
	}
	return nil
}

func (s *Stack) install(ctx context.Context, m *Manager) error {
	if err := s.installCRDs(ctx, m); err != nil {
		return err
	}
	return s.installRest(ctx, m)
}

// installCRDs comes first for all providers: a manager does not start without the kinds it watches.
func (s *Stack) installCRDs(ctx context.Context, m *Manager) error {
	if err := m.pickPorts(ctx); err != nil {
		return err
	}
	if err := s.Apply(ctx, m.components.namespace); err != nil {
		return err
	}
	crds, _, err := m.components.rewired(m.ports.webhook, s.pki.caPEM)
	if err != nil {
		return err
	}
	return s.InstallCRDs(ctx, crds...)
}

func (s *Stack) installRest(ctx context.Context, m *Manager) error {
	if err := s.Apply(ctx, m.components.rest...); err != nil {
		return err
	}
	if err := s.AwaitRights(ctx, m.components.rest...); err != nil {
		return err
	}
	if err := s.writeIdentity(ctx, m); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.managers = slices.DeleteFunc(s.managers,
		func(other *Manager) bool { return other.Name() == m.Name() && !other.running() })
	s.managers = append(s.managers, m)
	return nil
}

// writeIdentity gives the manager a kubeconfig with a token of its service account.
func (s *Stack) writeIdentity(ctx context.Context, m *Manager) error {
	namespace := m.components.namespace.GetName()
	name := cmp.Or(m.account, m.components.serviceAccount())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	accounts := s.clients.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making service account %s: %w", name, err)
	}
	week := int64(7 * 24 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &week}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making a token for service account %s: %w", name, err)
	}
	return s.writeKubeconfig(m.kubeconfig(), clientcmdapi.AuthInfo{Token: token.Status.Token}, namespace)
}

// installParts installs and starts the providers that the stack brings, side by side.
func (s *Stack) installParts(ctx context.Context, opts Options) error {
	managers := make([]*Manager, len(opts.Parts))
	for i, part := range opts.Parts {
		yaml, err := s.programs.Components(string(part))
		if err != nil {
			return err
		}
		install := ProviderInstall{
			ComponentsYAML: yaml,
			ManagerBinary:  s.Bin(string(part)),
			Version:        versionOf(part),
			Env:            opts.Env,
			Variables: map[string]string{
				"CLUSTER_TOPOLOGY":                      "true",
				"EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION": "true",
			},
		}
		maps.Copy(install.Variables, opts.Variables)
		if part == IPAM {
			install.HealthFlag = "--health-probe-bind-address"
		}
		parsed, err := parseComponents(yaml, install.Variables)
		if err != nil {
			return fmt.Errorf("installing %s: %w", part, err)
		}
		managers[i] = s.newManager(parsed, install)
	}
	for _, step := range []func(context.Context, *Manager) error{
		s.installCRDs,
		s.installRest,
		func(ctx context.Context, m *Manager) error { return m.Start(ctx) },
	} {
		group, ctx := errgroup.WithContext(ctx)
		for _, m := range managers {
			group.Go(func() error {
				if err := step(ctx, m); err != nil {
					return fmt.Errorf("installing %s: %w", m.Name(), err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// versionOf is the version of a part, for the inventory.
func versionOf(part Part) string {
	if part == IPAM {
		return programs.IPAMVersion
	}
	return programs.ClusterAPIVersion
}

func (m *Manager) kubeconfig() string {
	return filepath.Join(m.stack.dir, "pki", m.components.provider+m.account+".kubeconfig")
}
