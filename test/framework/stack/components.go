// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

const providerLabel = "cluster.x-k8s.io/provider"

// components is a parsed components file of a provider.
type components struct {
	provider  string // from the provider label, for example infrastructure-vcd
	namespace unstructured.Unstructured
	crds      []unstructured.Unstructured
	webhooks  []unstructured.Unstructured
	rest      []unstructured.Unstructured
	manager   appsv1.Deployment
}

// parseComponents replaces the variables like clusterctl and sorts the objects by kind. It drops objects that require
// containers (Services and cert-manager's objects). It keeps the Deployment, which defines how to run the manager.
func parseComponents(yaml []byte, variables map[string]string) (*components, error) {
	filled, err := yamlprocessor.NewSimpleProcessor().Process(yaml, func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	if err != nil {
		return nil, fmt.Errorf("filling in variables: %w", err)
	}
	objects, err := utilyaml.ToUnstructured(filled)
	if err != nil {
		return nil, fmt.Errorf("reading components: %w", err)
	}
	c := &components{}
	for i := range objects {
		if err := c.add(objects[i]); err != nil {
			return nil, err
		}
	}
	c.provider = c.namespace.GetLabels()[providerLabel]
	c.label()
	if c.namespace.GetName() == "" || c.provider == "" || c.manager.Name == "" {
		return nil, fmt.Errorf("components need one Namespace with the label %s and one Deployment", providerLabel)
	}
	return c, nil
}

// label sets the labels of clusterctl init, which clusterctl move and delete select.
func (c *components) label() {
	for _, list := range [][]unstructured.Unstructured{{c.namespace}, c.crds, c.webhooks, c.rest} {
		for i := range list {
			labels := list[i].GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[clusterctlv1.ClusterctlLabel] = ""
			labels[providerLabel] = c.provider
			list[i].SetLabels(labels)
		}
	}
}

func (c *components) add(object unstructured.Unstructured) error {
	switch object.GetKind() {
	case "Namespace":
		c.namespace = object
	case "CustomResourceDefinition":
		c.crds = append(c.crds, object)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		c.webhooks = append(c.webhooks, object)
	case "Deployment":
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c.manager); err != nil {
			return fmt.Errorf("reading Deployment %s: %w", object.GetName(), err)
		}
	case "Service":
	default:
		if !strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
			c.rest = append(c.rest, object)
		}
	}
	return nil
}

// container returns the container that runs the manager.
func (c *components) container() corev1.Container {
	containers := c.manager.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == "manager" {
			return containers[i]
		}
	}
	return corev1.Container{}
}

// environment returns the environment of the manager in the Deployment, without variables that describe the pod.
func (c *components) environment() []string {
	env := []string{"POD_NAMESPACE=" + c.namespace.GetName()}
	for _, entry := range c.container().Env {
		if entry.ValueFrom == nil {
			env = append(env, entry.Name+"="+entry.Value)
		}
	}
	return env
}

func (c *components) serviceAccount() string {
	if name := c.manager.Spec.Template.Spec.ServiceAccountName; name != "" {
		return name
	}
	return "default"
}

// callURL replaces a reference to a Service by the URL of a process on this machine. It supports client configurations
// of webhooks and of conversions.
func callURL(clientConfig map[string]any, port int, ca []byte) {
	path, _, _ := unstructured.NestedString(clientConfig, "service", "path")
	delete(clientConfig, "service")
	clientConfig["url"] = fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
	clientConfig["caBundle"] = base64String(ca)
}

// rewired returns copies of the CRDs and the webhook configurations. The copies call the provider at a local port.
func (c *components) rewired(port int, ca []byte) ([]unstructured.Unstructured, []unstructured.Unstructured, error) {
	crds := copies(c.crds)
	webhooks := copies(c.webhooks)
	for _, list := range [][]unstructured.Unstructured{crds, webhooks} {
		for i := range list {
			if err := eachClientConfig(&list[i], func(config map[string]any) { callURL(config, port, ca) }); err != nil {
				return nil, nil, err
			}
		}
	}
	return crds, webhooks, nil
}

// keepStorageVersions removes all versions of the CRDs but those that are stored.
func (c *components) keepStorageVersions() error {
	for i := range c.crds {
		crd := &c.crds[i]
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil {
			return fmt.Errorf("reading %s: %w", crd.GetName(), err)
		}
		versions = slices.DeleteFunc(versions, func(entry any) bool {
			version, _ := entry.(map[string]any)
			return version["storage"] != true
		})
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			return fmt.Errorf("changing %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

func copies(objects []unstructured.Unstructured) []unstructured.Unstructured {
	var found []unstructured.Unstructured
	for i := range objects {
		found = append(found, *objects[i].DeepCopy())
	}
	return found
}

// eachClientConfig calls change for each client configuration of a webhook configuration or of a CRD's conversion.
func eachClientConfig(object *unstructured.Unstructured, change func(clientConfig map[string]any)) error {
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s: %w", object.GetName(), err)
	}
	for _, entry := range hooks {
		hook, _ := entry.(map[string]any)
		if config, ok := hook["clientConfig"].(map[string]any); ok {
			change(config)
		}
	}
	if len(hooks) > 0 {
		object.Object["webhooks"] = hooks
	}
	conversion := []string{"spec", "conversion", "webhook", "clientConfig"}
	config, found, err := unstructured.NestedMap(object.Object, conversion...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", object.GetName(), err)
	}
	if !found {
		return nil
	}
	change(config)
	return unstructured.SetNestedMap(object.Object, config, conversion...)
}
