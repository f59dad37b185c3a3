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

// A ProviderInstall is a provider as shipped, and the program of its manager.
type ProviderInstall struct {
	// ComponentsYAML is the components file: Namespace, CRDs, RBAC, webhook configurations, Deployment and so on.
	ComponentsYAML []byte
	// ManagerBinary is the path of the program that the image of the Deployment contains.
	ManagerBinary string
	// Version is the version in the inventory, such as v2.0.0.
	Version string
	// Args follow the arguments of the Deployment, so that they take precedence.
	Args []string
	// Env is appended to the environment of the Deployment.
	Env []string
	// Variables replace ${NAME} in the components.
	Variables map[string]string
	// HealthFlag is the flag with the address of /readyz. If it is empty, it is --health-addr, as in Cluster API's
	// managers.
	HealthFlag string
	// MetricsArgs are the flags that enable metrics, with %d for the port. Nil means Cluster API's flags.
	MetricsArgs []string
}

// InstallProvider applies all objects of a provider except those that require containers. It returns the manager, which
// the caller must start. Webhooks and conversions call the manager at a local port. The manager has exactly the rights
// that the components grant to it.
func (s *Stack) InstallProvider(ctx context.Context, install ProviderInstall) (*Manager, error) {
	parsed, err := s.parse(install.ComponentsYAML, install.Variables)
	if err != nil {
		return nil, err
	}
	m := s.newManager(parsed, install)
	if err := s.install(ctx, m); err != nil {
		return nil, fmt.Errorf("installing %s: %w", m.Name(), err)
	}
	return m, nil
}

// parse parses components, and applies the options of the stack to them.
func (s *Stack) parse(yaml []byte, variables map[string]string) (*components, error) {
	parsed, err := parseComponents(yaml, variables)
	if err != nil || !s.storageVersionsOnly {
		return parsed, err
	}
	return parsed, parsed.keepStorageVersions()
}

// Unwire removes the webhooks and conversions of a provider that clusterctl has installed. They call its manager
// through a Service, but no pods run. InstallProvider configures the same objects to call the manager at a local port.
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

// installCRDs installs the CRDs of all providers first, because a manager does not start without the kinds that it
// watches.
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

// writeIdentity creates a kubeconfig for the manager with a token of its service account.
func (s *Stack) writeIdentity(ctx context.Context, m *Manager) error {
	namespace := m.components.namespace.GetName()
	name := cmp.Or(m.account, m.components.serviceAccount())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	accounts := s.clients.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating service account %s: %w", name, err)
	}
	week := int64(7 * 24 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &week}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a token for service account %s: %w", name, err)
	}
	return s.writeKubeconfig(m.kubeconfig(), clientcmdapi.AuthInfo{Token: token.Status.Token}, namespace)
}

// installParts installs and starts the providers of the stack concurrently.
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
		parsed, err := s.parse(yaml, install.Variables)
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

// versionOf returns the version of a part for the inventory.
func versionOf(part Part) string {
	if part == IPAM {
		return programs.IPAMVersion
	}
	return programs.ClusterAPIVersion
}

func (m *Manager) kubeconfig() string {
	return filepath.Join(m.stack.dir, "pki", m.components.provider+m.account+".kubeconfig")
}
