{{- define "streamwatch.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pod: never changes over upgrades. */}}
{{- define "streamwatch.selector" -}}
app.kubernetes.io/name: streamwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "streamwatch.labels" -}}
{{ include "streamwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Whether there are two replicas, of which one publishes and notifies; empty if not. */}}
{{- define "streamwatch.standby" -}}
{{- if dig "standby" "enabled" false .Values.config }}true{{ end -}}
{{- end -}}

{{/* Whether the daemon speaks HTTPS; empty if not. */}}
{{- define "streamwatch.tls" -}}
{{- if dig "http" "tls" nil .Values.config }}true{{ end -}}
{{- end -}}

{{/* Settings with what is the chart's: where it listens, and where its volume is. */}}
{{- define "streamwatch.config" -}}
{{- $ours := dict "http" (dict "listen" "0.0.0.0:9877") "state" (dict "kind" "rocksdb" "directory" "/var/lib/streamwatch/state") -}}
{{- mergeOverwrite (deepCopy .Values.config) $ours | toYaml -}}
{{- end -}}
