// SPDX-License-Identifier: Apache-2.0

// Package addons holds what is installed into workload clusters: the cloud controller manager. All its manifests are
// made from one source, which differs between installations in no more than the fields of [CCM]. The package is pure:
// it only renders.
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

// Names in the workload cluster, which are those of VMware's CPI 1.6.1.
const (
	// Namespace is where the cloud controller manager runs.
	Namespace = "kube-system"
	// DeploymentName is the name of its Deployment, of its container, and the value of label app of its pods.
	DeploymentName = "vmware-cloud-director-ccm"
	// ConfigMapName is the name of the ConfigMap with its configuration, in key [ConfigKey].
	ConfigMapName = "vcloud-ccm-configmap"
	// ConfigKey is the key of the configuration, and the name of its file.
	ConfigKey = "vcloud-ccm-config.yaml"
	// CredentialsName is the name of the Secret with what it logs in to VCD with.
	CredentialsName = "vcloud-basic-auth" //nolint:gosec // A name.
	// ManagedCredentialsName is the name of the same Secret where the manager writes it.
	ManagedCredentialsName = "vcloud-ccm-credentials" //nolint:gosec // A name.
	// ServiceAccountName is the name of the Secret with the token of a service account, in key [RefreshTokenKey]. The
	// cloud controller manager rewrites it with each use.
	ServiceAccountName = "vcloud-service-account"
	// RefreshTokenKey is the key of an API token, or of the token of a service account.
	RefreshTokenKey = "refreshToken"
	// ProxyName is the name of the Secret with the variables of the proxy by which VCD is reached: [CCM.ProxyVariables].
	ProxyName = "vcloud-ccm-proxy"
	// ClusterIDName is the name of the Secret with the id of the cluster, in key [ClusterIDKey].
	ClusterIDName = "vcloud-clusterid-secret"
	// ClusterIDKey is the key of the id of the cluster.
	ClusterIDKey = "clusterid"
)

// Paths and addresses of the program.
const (
	// Binary is the path of the program in the image.
	Binary = "/opt/vcloud/bin/cloud-provider-for-cloud-director"
	// Repository is the name of its image, without registry; CPI's, by which images are mirrored and found.
	Repository = "cloud-provider-for-cloud-director"
	// Registry is where its image is published.
	Registry = "ghcr.io/cluster-api-provider-vcd"
)

//go:embed manifests/ccm.yaml
var source string

// CCM is what differs between installations of the cloud controller manager.
type CCM struct {
	// Image is the whole reference of the image, with a tag or digest.
	Image string
	// Replicas is how many run; one of them works.
	Replicas int32
	// ConfigHash, if not empty, is an annotation of the pods: another one replaces them. The program reads its
	// configuration once.
	ConfigHash string
	// APIHost and APIPort, if set, are where it asks the Kubernetes API server: the endpoint of the control plane, not
	// the Service kubernetes. That needs kube-proxy, which waits for the addresses of its node, which come from here.
	APIHost string
	APIPort int32
	// ProxySecret, if not empty, is the Secret with the variables of a proxy: [Proxy].
	ProxySecret string
	// ProxyOptional means that this Secret, and each of its keys, may be missing: there is no proxy then.
	ProxyOptional bool
	// Cloud of the cluster; nil: VMware Cloud Director.
	Cloud *Cloud
}

// Variables of a proxy.
const (
	httpProxy  = "HTTP_PROXY"
	httpsProxy = "HTTPS_PROXY"
	noProxy    = "NO_PROXY"
)

// ProxyVariables are the variables of a proxy, and the keys of the Secret with them. HTTP_PROXY is for clouds whose API
// has no TLS.
func (c CCM) ProxyVariables() []string {
	if c.ProxyOptional {
		return []string{httpProxy, httpsProxy, noProxy}
	}
	return []string{httpsProxy, noProxy}
}

// Image returns the whole reference of the image of a release in a registry: the one of this project if it is empty.
func Image(registry, version string) string {
	if registry == "" {
		registry = Registry
	}
	return strings.TrimSuffix(registry, "/") + "/" + Repository + ":" + version
}

// YAML renders account, rights and Deployment, with the comments of the source. It fails if the image is not pinned.
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

// Objects renders account, rights and Deployment.
func (c CCM) Objects() ([]unstructured.Unstructured, error) {
	raw, err := c.YAML()
	if err != nil {
		return nil, err
	}
	return Parse(raw)
}

// pinned returns an error if the reference of an image may change its meaning.
func pinned(image string) error {
	if strings.Contains(image, "@sha256:") {
		return nil
	}
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found || tag == "" || tag == "latest" {
		return fmt.Errorf("the image %q of the cloud controller manager has no version: set a tag other than "+
			"latest, or a digest", image)
	}
	return nil
}

// quote writes a string so that YAML reads the same again, whatever is in it.
func quote(s string) (string, error) {
	raw, err := json.Marshal(s)
	return string(raw), err
}

// ConfigMap is the ConfigMap that holds a configuration.
func ConfigMap(config []byte) (unstructured.Unstructured, error) {
	return toUnstructured(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ConfigMapName},
		Data:       map[string]string{ConfigKey: string(config)},
	})
}

// ClusterID is the Secret that holds the id of a cluster.
func ClusterID(id string) (unstructured.Unstructured, error) {
	return secret(ClusterIDName, map[string][]byte{ClusterIDKey: []byte(id)})
}

// Credentials is the Secret that holds what the cloud controller manager logs in with.
func Credentials(data map[string][]byte) (unstructured.Unstructured, error) {
	return secret(CredentialsName, data)
}

// ManagedCredentials is the Secret that holds what the cloud controller manager of [ManagedVCD] logs in with.
func ManagedCredentials(data map[string][]byte) (unstructured.Unstructured, error) {
	return secret(ManagedCredentialsName, data)
}

// ServiceAccount is the Secret that holds the first token of a service account.
func ServiceAccount(token []byte) (unstructured.Unstructured, error) {
	return secret(ServiceAccountName, map[string][]byte{RefreshTokenKey: token})
}

// Proxy is the Secret with the variables of the proxy by which VCD is reached: a proxy's URL may have a password.
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

// Parse reads the objects of YAML documents.
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

// Marshal writes objects as YAML documents. The same objects give the same bytes.
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
