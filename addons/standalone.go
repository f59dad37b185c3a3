// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// RegistryPlaceholder is the text that a container service extension replaces with the registry of its site, including
// the path of the images. Like CPI's releases, the manifest names the image directly below it.
const RegistryPlaceholder = "__REGISTRY__"

// AirgapTemplateName is the file name by which a container service extension finds the manifest in its carrier image.
const AirgapTemplateName = "cloud-director-ccm-crs-airgap.yaml.template"

// AirgapImage returns the image reference in the airgap template, for sites that mirror the image in their registry.
func AirgapImage(version string) string {
	return RegistryPlaceholder + "/" + Repository + ":" + version
}

// AirgapTemplate renders the manifest for clusters of a container service extension without internet access. It is the
// stand-alone manifest with [RegistryPlaceholder] as its registry. Configuration, credentials and the cluster ID are
// separate resources in the ClusterResourceSet of the cluster.
func AirgapTemplate(version string) ([]byte, error) {
	return StandAloneCCM(AirgapImage(version), VCD()).YAML()
}

// StandAloneCCM returns the cloud controller manager of a cloud for clusters without a manager of this project. It uses
// a proxy if the user creates the Secret with the proxy settings.
func StandAloneCCM(image string, cloud Cloud) CCM {
	return CCM{
		Image:         image,
		Replicas:      1,
		ProxySecret:   cloud.ProxySecret,
		ProxyOptional: true,
		Cloud:         &cloud,
	}
}

// A File is a file of a release.
type File struct {
	Name    string
	Content []byte
}

// Files of a stand-alone installation, with the names of CPI's files.
const (
	// ManifestName contains the service account, its roles and the Deployment. An upgrade of CPI 1.6.1 applies only
	// this file.
	ManifestName = "cloud-director-ccm.yaml"
	// CRSManifestName has the same content, for the ClusterResourceSet of a management cluster.
	CRSManifestName = "cloud-director-ccm-crs.yaml"
	// ConfigMapFile contains the configuration.
	ConfigMapFile = "vcloud-configmap.yaml"
	// CredentialsFile contains the credentials.
	CredentialsFile = "vcloud-basic-auth.yaml" //nolint:gosec // A name.
	// ClusterIDFile contains the ID of the cluster.
	ClusterIDFile = "vcloud-clusterid-secret.yaml"
	// CloudStackManifestName contains the service account, its roles and the Deployment for clusters on CloudStack.
	CloudStackManifestName = "cloudstack-ccm.yaml"
	// CloudStackConfigFile contains the configuration and credentials for CloudStack.
	CloudStackConfigFile = "cloudstack-secret.yaml"
	// VSphereManifestName contains the service account, its roles and the DaemonSet for clusters on vSphere.
	VSphereManifestName = "vsphere-cloud-controller-manager.yaml"
	// VSphereConfigFile contains the configuration and credentials for vSphere.
	VSphereConfigFile = "vsphere-cloud-config.yaml"
)

// StandAlone renders the manifests of a release for clusters without a manager of this project. Users replace the
// placeholders in capital letters.
func StandAlone(image string) ([]File, error) {
	manifest, err := StandAloneCCM(image, VCD()).YAML()
	if err != nil {
		return nil, err
	}
	config, err := standAloneConfig()
	if err != nil {
		return nil, err
	}
	onCloudStack, err := StandAloneCCM(image, CloudStack()).YAML()
	if err != nil {
		return nil, err
	}
	onVSphere, err := StandAloneCCM(image, VSphere()).YAML()
	if err != nil {
		return nil, err
	}
	return []File{
		{VSphereManifestName, onVSphere},
		{VSphereConfigFile, commented(vSphereConfigComment, VSphereConfig)},
		{CloudStackManifestName, onCloudStack},
		{CloudStackConfigFile, commented(cloudStackConfigComment, CloudStackConfig)},
		{ManifestName, manifest},
		{CRSManifestName, manifest},
		{ConfigMapFile, commented(configComment, string(config))},
		{CredentialsFile, commented(credentialsComment, credentialsManifest)},
		{ClusterIDFile, commented(clusterIDComment, clusterIDManifest)},
	}, nil
}

const (
	configComment = `Configuration of the cloud controller manager. Keep an existing ConfigMap of CPI: its keys are supported.
VCD_HOST: the URL of VMware Cloud Director, such as https://vcd.example.com.
ORG, VDC, NETWORK: the names of the organization, the organization VDC and the routed network of the nodes.
VAPP: the name of the vApp with the nodes.`
	credentialsComment = `Credentials for VMware Cloud Director: an API token in refreshToken, or username and password.
Leave the other keys empty. Changes are reloaded. Never use a system administrator.`
	clusterIDComment = `ID that marks the objects of the cloud controller manager in VMware Cloud Director. It must be unique and must not change during the
lifetime of the cluster. With CAPVCD, use status.infraId of the VCDCluster, otherwise any UUID.`
	cloudStackConfigComment = `Configuration of the cloud controller manager on CloudStack. Keep an existing Secret of the original controller.
API_URL: the address of the API, such as https://cloud.example.com/client/api.
API_KEY, SECRET_KEY: the keys of a plain user of the account or project of the nodes. Never use a root administrator.`

	vSphereConfigComment = `Configuration of the cloud controller manager on vSphere, and its credentials. Keep existing ones of the vSphere CPI.
VCENTER: name or address of the vCenter, also in the keys of the Secret. DATACENTER: the datacenter of the nodes.
USER, PASSWORD: credentials of a user with read access to the VMs. Never use an administrator.`

	// VSphereConfig is the ConfigMap and the Secret of a cluster on vSphere.
	VSphereConfig = `apiVersion: v1
kind: ConfigMap
metadata:
  name: vsphere-cloud-config
  namespace: kube-system
data:
  vsphere.conf: |
    global:
      secretName: vsphere-cloud-secret
      secretNamespace: kube-system
    vcenter:
      VCENTER:
        server: VCENTER
        datacenters: [DATACENTER]
---
apiVersion: v1
kind: Secret
metadata:
  name: vsphere-cloud-secret
  namespace: kube-system
type: Opaque
stringData:
  VCENTER.username: USER
  VCENTER.password: PASSWORD
`

	// CloudStackConfig is the Secret of a cluster on CloudStack.
	CloudStackConfig = `apiVersion: v1
kind: Secret
metadata:
  name: cloudstack-secret
  namespace: kube-system
type: Opaque
stringData:
  cloud-config: |
    [Global]
    api-url = API_URL
    api-key = API_KEY
    secret-key = SECRET_KEY
`

	//nolint:gosec // A placeholder.
	credentialsManifest = `apiVersion: v1
kind: Secret
metadata:
  name: vcloud-basic-auth
  namespace: kube-system
type: Opaque
stringData:
  username: ""
  password: ""
  refreshToken: "API_TOKEN"
`
	clusterIDManifest = `apiVersion: v1
kind: Secret
metadata:
  name: vcloud-clusterid-secret
  namespace: kube-system
type: Opaque
stringData:
  clusterid: "CLUSTER_ID"
`
)

func standAloneConfig() ([]byte, error) {
	config, err := yaml.Marshal(vcdconfig.Config{
		VCD:          vcdconfig.VCD{Host: "VCD_HOST", Org: "ORG", VDC: "VDC"},
		LoadBalancer: vcdconfig.LoadBalancer{EdgeGateway: vcdconfig.EdgeGateway{Network: "NETWORK"}},
		VAppName:     "VAPP",
	})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	object, err := ConfigMap(config)
	if err != nil {
		return nil, err
	}
	return Marshal([]unstructured.Unstructured{object})
}

// commented prepends a comment to a manifest.
func commented(comment, manifest string) []byte {
	return []byte("# " + strings.ReplaceAll(comment, "\n", "\n# ") + "\n" + manifest)
}
