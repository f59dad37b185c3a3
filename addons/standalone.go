// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
)

// RegistryPlaceholder is what a container service extension replaces by the registry of its site, with the folder of the
// images in it: CPI's releases name the image directly below it.
const RegistryPlaceholder = "__REGISTRY__"

// AirgapTemplateName is the name by which a container service extension finds the manifest in its carrier image.
const AirgapTemplateName = "cloud-director-ccm-crs-airgap.yaml.template"

// AirgapImage is the image that the airgap template names, as it is found in the registry of a site that mirrors it.
func AirgapImage(version string) string {
	return RegistryPlaceholder + "/" + Repository + ":" + version
}

// AirgapTemplate renders the manifest for clusters of a container service extension without internet: the stand-alone
// one, whose registry is still to be filled in. Configuration, credentials and the id of the cluster are further
// resources of its cluster resource set.
func AirgapTemplate(version string) ([]byte, error) {
	return StandAloneCCM(AirgapImage(version), VCD()).YAML()
}

// StandAloneCCM is the cloud controller manager of a cloud for clusters that no manager of this project owns. It uses a
// proxy if the user creates the Secret with the proxy settings.
func StandAloneCCM(image string, cloud Cloud) CCM {
	return CCM{
		Image:         image,
		Replicas:      1,
		ProxySecret:   cloud.ProxySecret,
		ProxyOptional: true,
		Cloud:         &cloud,
	}
}

// A File is a manifest of a release.
type File struct {
	Name    string
	Content []byte
}

// The files of a stand-alone installation, named as CPI's.
const (
	// ManifestName has account, rights and Deployment: it is all that an upgrade of CPI 1.6.1 applies.
	ManifestName = "cloud-director-ccm.yaml"
	// CRSManifestName is the same, for the ClusterResourceSet of a management cluster.
	CRSManifestName = "cloud-director-ccm-crs.yaml"
	// ConfigMapFile has the configuration.
	ConfigMapFile = "vcloud-configmap.yaml"
	// CredentialsFile has what is logged in with.
	CredentialsFile = "vcloud-basic-auth.yaml" //nolint:gosec // A name.
	// ClusterIDFile has the id of the cluster.
	ClusterIDFile = "vcloud-clusterid-secret.yaml"
	// CloudStackManifestName has account, rights and Deployment for clusters on CloudStack.
	CloudStackManifestName = "cloudstack-ccm.yaml"
	// CloudStackConfigFile has configuration and credentials.
	CloudStackConfigFile = "cloudstack-secret.yaml"
	// VSphereManifestName has account, rights and DaemonSet for clusters on vSphere.
	VSphereManifestName = "vsphere-cloud-controller-manager.yaml"
	// VSphereConfigFile has configuration and credentials.
	VSphereConfigFile = "vsphere-cloud-config.yaml"
)

// StandAlone renders the manifests of a release for clusters that no manager of this project owns. What is written in
// capitals in them is to be filled in.
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

// commented puts a comment before a manifest.
func commented(comment, manifest string) []byte {
	return []byte("# " + strings.ReplaceAll(comment, "\n", "\n# ") + "\n" + manifest)
}
