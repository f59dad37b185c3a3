// SPDX-License-Identifier: Apache-2.0

// Package addons renders the manifests of the cloud controller manager for workload clusters. All manifests come from
// one source, which differs between installations only in the fields of [CCM]. The package is pure: it only renders.
package addons

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Names in the workload cluster. They are the same as in VMware's CPI 1.6.1.
const (
	// Namespace is the namespace of the cloud controller manager.
	Namespace = "kube-system"
	// DeploymentName is the name of the Deployment and its container, and the value of the label app of its pods.
	DeploymentName = "vmware-cloud-director-ccm"
	// ConfigMapName is the name of the ConfigMap with the configuration in the key [ConfigKey].
	ConfigMapName = "vcloud-ccm-configmap"
	// ConfigKey is the key of the configuration and the name of its file.
	ConfigKey = "vcloud-ccm-config.yaml"
	// CredentialsName is the name of the Secret with the credentials for VCD.
	CredentialsName = "vcloud-basic-auth" //nolint:gosec // A name.
	// ManagedCredentialsName is the name of this Secret if the manager writes it.
	ManagedCredentialsName = "vcloud-ccm-credentials" //nolint:gosec // A name.
	// ServiceAccountName is the name of the Secret with the token of a service account in the key [RefreshTokenKey].
	// The cloud controller manager replaces the token with each use.
	ServiceAccountName = "vcloud-service-account"
	// RefreshTokenKey is the key of an API token or of the token of a service account.
	RefreshTokenKey = "refreshToken"
	// ProxyName is the name of the Secret with the environment variables of the proxy for VCD: [CCM.ProxyVariables].
	ProxyName = "vcloud-ccm-proxy"
	// ClusterIDName is the name of the Secret with the ID of the cluster in the key [ClusterIDKey].
	ClusterIDName = "vcloud-clusterid-secret"
	// ClusterIDKey is the key of the cluster ID.
	ClusterIDKey = "clusterid"
)

// Paths and addresses of the program.
const (
	// Binary is the path of the program in the image.
	Binary = "/opt/vcloud/bin/cloud-provider-for-cloud-director"
	// Repository is the name of the image without its registry. It is the same as that of CPI's image, because mirrors
	// and users find the image by this name.
	Repository = "cloud-provider-for-cloud-director"
	// Registry is the registry where the image is published.
	Registry = "ghcr.io/cluster-api-provider-vcd"
)

//go:embed manifests/ccm.yaml
var source string

// CCM holds the settings that differ between installations of the cloud controller manager.
type CCM struct {
	// Image is the full image reference with a tag or digest.
	Image string
	// Replicas is the number of pods. Only the leader is active.
	Replicas int32
	// ConfigHash, if not empty, is the value of an annotation of the pods. A new value replaces the pods, because the
	// program reads its configuration only at startup.
	ConfigHash string
	// APIHost and APIPort, if set, are the address of the Kubernetes API server at the endpoint of the control plane.
	// The Service kubernetes cannot be used: it needs kube-proxy, which waits for the addresses of its node, and the
	// cloud controller manager sets these addresses.
	APIHost string
	APIPort int32
	// ProxySecret, if not empty, is the name of the Secret with the environment variables of a proxy: [Proxy].
	ProxySecret string
	// ProxyOptional means that this Secret and each of its keys may be missing. Without them, no proxy is used.
	ProxyOptional bool
	// Cloud is the cloud of the cluster; nil means VMware Cloud Director.
	Cloud *Cloud
}

// Environment variables of a proxy.
const (
	httpProxy  = "HTTP_PROXY"
	httpsProxy = "HTTPS_PROXY"
	noProxy    = "NO_PROXY"
)

// ProxyVariables returns the environment variables of a proxy, which are also the keys of their Secret. HTTP_PROXY is
// for clouds whose API does not use TLS.
func (c CCM) ProxyVariables() []string {
	if c.ProxyOptional {
		return []string{httpProxy, httpsProxy, noProxy}
	}
	return []string{httpsProxy, noProxy}
}

// Image returns the full image reference of a release. An empty registry means the registry of this project.
func Image(registry, version string) string {
	if registry == "" {
		registry = Registry
	}
	return strings.TrimSuffix(registry, "/") + "/" + Repository + ":" + version
}

// YAML renders the service account, its roles and the Deployment, with the comments of the source. It fails if the
// image is not pinned.
func (c CCM) YAML() ([]byte, error) {
	if err := pinned(c.Image); err != nil {
		return nil, err
	}
	functions := template.FuncMap{"quote": quote}
	t, err := template.New("ccm").Funcs(functions).Option("missingkey=error").Parse(source)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var out bytes.Buffer
	cloud := VCD()
	if c.Cloud != nil {
		cloud = *c.Cloud
	}
	if err := t.Execute(&out, struct {
		CCM
		Cloud Cloud
	}{c, cloud}); err != nil {
		return nil, fmt.Errorf("rendering the manifest: %w", err)
	}
	return out.Bytes(), nil
}

// Objects renders the service account, its roles and the Deployment.
func (c CCM) Objects() ([]unstructured.Unstructured, error) {
	raw, err := c.YAML()
	if err != nil {
		return nil, err
	}
	return Parse(raw)
}

// pinned returns an error if the content behind an image reference may change.
func pinned(image string) error {
	if strings.Contains(image, "@sha256:") {
		return nil
	}
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found || tag == "" || tag == "latest" {
		return fmt.Errorf("the image %q of the cloud controller manager has no version: set a tag other than latest, or a digest", image)
	}
	return nil
}

// quote quotes any string for YAML.
func quote(s string) (string, error) {
	raw, err := json.Marshal(s)
	return string(raw), err
}

// ConfigMap returns the ConfigMap with a configuration.
func ConfigMap(config []byte) (unstructured.Unstructured, error) {
	return toUnstructured(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ConfigMapName},
		Data:       map[string]string{ConfigKey: string(config)},
	})
}

// ClusterID returns the Secret with the ID of a cluster.
func ClusterID(id string) (unstructured.Unstructured, error) {
	return secret(ClusterIDName, map[string][]byte{ClusterIDKey: []byte(id)})
}

// Credentials returns the Secret with the credentials of the cloud controller manager.
func Credentials(data map[string][]byte) (unstructured.Unstructured, error) {
	return secret(CredentialsName, data)
}

// ManagedCredentials returns the Secret with the credentials of the cloud controller manager of [ManagedVCD].
func ManagedCredentials(data map[string][]byte) (unstructured.Unstructured, error) {
	return secret(ManagedCredentialsName, data)
}

// ServiceAccount returns the Secret with the first token of a service account.
func ServiceAccount(token []byte) (unstructured.Unstructured, error) {
	return secret(ServiceAccountName, map[string][]byte{RefreshTokenKey: token})
}

// Proxy returns the Secret with the environment variables of the proxy for VCD. It is a Secret because the URL may
// contain a password. direct are the hosts that are reached without the proxy.
func Proxy(url string, direct []string) (unstructured.Unstructured, error) {
	return VCD().Proxy(map[string][]byte{
		httpsProxy: []byte(url),
		noProxy:    []byte(strings.Join(direct, ",")),
	})
}

func secret(name string, data map[string][]byte) (unstructured.Unstructured, error) {
	return toUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	})
}

func toUnstructured(object any) (unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("converting %T: %w", object, err)
	}
	u := unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// Parse decodes the objects in YAML documents.
func Parse(raw []byte) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// Marshal encodes objects as YAML documents. Equal objects result in equal bytes.
func Marshal(objects []unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i := range objects {
		raw, err := yaml.Marshal(objects[i].Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", objects[i].GetKind(), objects[i].GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes(), nil
}

// Annotate adds annotations to each object.
func Annotate(objects []unstructured.Unstructured, add map[string]string) {
	for i := range objects {
		all := objects[i].GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, add)
		objects[i].SetAnnotations(all)
	}
}
